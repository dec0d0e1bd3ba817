"""xacro files: URDF and SRDF with macros, expanded only with permission."""
