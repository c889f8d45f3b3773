"""Templates, style sheets and scripts of pages."""
