; Items that are picked from surfaces and put on others: a domain smaller than blocks, whose words are its own.
(define (domain spots)
  (:requirements :typing)
  (:types item spot)
  (:predicates (at ?x - item ?s - spot) (held ?x - item) (free))
  (:action take
    :parameters (?x - item ?s - spot)
    :precondition (and (at ?x ?s) (free))
    :effect (and (held ?x) (not (at ?x ?s)) (not (free))))
  (:action give
    :parameters (?x - item ?s - spot)
    :precondition (held ?x)
    :effect (and (at ?x ?s) (free) (not (held ?x)))))
