"""Task plans by the SMT solver Z3."""
