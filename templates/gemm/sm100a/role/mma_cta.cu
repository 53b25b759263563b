elect_one()
