"""What a plan says about speed before anything has run: floors and ceilings by arithmetic, no measurement."""
