sum(v, partials, splits, c);
