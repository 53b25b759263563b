struct Tile { int row, column; };  // of its first element in D
