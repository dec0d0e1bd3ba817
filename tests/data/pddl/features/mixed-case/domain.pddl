; Upper and lower case are the same, in keywords, names and variables.
(DEFINE (DOMAIN Mixed-Case)
  (:REQUIREMENTS :Strips :TYPING)
  (:Types Key DOOR - Object)
  (:PREDICATES (Fits ?K - key ?D - Door) (OPEN ?d - dOOr))
  (:Action Open-Door
    :PARAMETERS (?Key - KEY ?door - door)
    :Precondition (AND (fits ?key ?DOOR) (Not (open ?Door)))
    :EFFECT (Open ?dOOr)))
