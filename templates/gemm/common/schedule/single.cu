const Tile tile{0, 0};
${ body }
