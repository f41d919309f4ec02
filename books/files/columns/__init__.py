"""What tables of other programs mean: which column has which member of a book, and what their cells say."""
