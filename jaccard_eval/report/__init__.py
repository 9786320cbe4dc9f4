"""How a result is shown: one report model, one module per output."""
