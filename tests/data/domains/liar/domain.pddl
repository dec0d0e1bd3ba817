; The words of the domain spots, with another meaning.
(define (domain liar)
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
