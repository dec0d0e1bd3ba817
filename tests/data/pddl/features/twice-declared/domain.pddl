; A predicate declared twice with parameters of equal types and other names, which says the same once more.
(define (domain twice-declared)
  (:types cup)
  (:predicates (full ?c - cup) (clean ?c - cup) (full ?d - cup))
  (:action fill
    :parameters (?c - cup)
    :precondition (clean ?c)
    :effect (and (full ?c) (not (clean ?c)))))
