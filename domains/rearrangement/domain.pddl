; Items change places, of which each has room for one.
(define (domain rearrangement)
  (:requirements :typing)
  (:types item place)
  (:predicates
    (at ?x - item ?p - place)
    (free ?p - place)
    (handempty)
    (holding ?x - item))

  (:action take
    :parameters (?x - item ?p - place)
    :precondition (and (at ?x ?p) (handempty))
    :effect (and (holding ?x) (free ?p) (not (at ?x ?p)) (not (handempty))))

  (:action put
    :parameters (?x - item ?p - place)
    :precondition (and (holding ?x) (free ?p))
    :effect (and (at ?x ?p) (handempty) (not (holding ?x)) (not (free ?p)))))
