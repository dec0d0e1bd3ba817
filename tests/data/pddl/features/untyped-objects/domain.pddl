; The domain has types, but the problem's objects and some parameters have none.
(define (domain untyped-objects)
  (:requirements :typing)
  (:types tool - object)
  (:predicates (near ?x) (held ?x - object) (sharp ?t - tool))
  (:action grab
    :parameters (?x)
    :precondition (near ?x)
    :effect (and (held ?x) (not (near ?x))))
  (:action whet
    :parameters (?t - tool)
    :precondition (held ?t)
    :effect (sharp ?t)))
