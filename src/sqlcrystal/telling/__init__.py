"""The work of a query, told in one plain sentence that is made from its syntax tree, without a model."""
