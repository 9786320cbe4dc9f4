"""Quality gates: rules, how they are configured and judged, and how noise bears on them."""
