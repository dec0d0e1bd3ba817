; Blocks that stand on each other or at places. ?x of clear has no type on purpose: blocks and places can be clear.
(define (domain places)
  (:requirements :typing)
  (:types block - object
          place - object)
  (:predicates (on ?x - block ?y - block)
               (at ?x - block ?p - place)
               (clear ?x)
               (empty)
               (held ?x - block))
  (:action lift
    :parameters (?x - block ?p - place)
    :precondition (and (clear ?x) (at ?x ?p) (empty))
    :effect (and (held ?x) (clear ?p) (not (at ?x ?p)) (not (clear ?x)) (not (empty))))
  (:action lower
    :parameters (?x - block ?p - place)
    :precondition (and (held ?x) (clear ?p))
    :effect (and (at ?x ?p) (clear ?x) (empty) (not (held ?x)) (not (clear ?p))))
  (:action pile
    :parameters (?x - block ?y - block)
    :precondition (and (held ?x) (clear ?y))
    :effect (and (on ?x ?y) (clear ?x) (empty) (not (held ?x)) (not (clear ?y))))
  (:action unpile
    :parameters (?x - block ?y - block)
    :precondition (and (on ?x ?y) (clear ?x) (empty))
    :effect (and (held ?x) (clear ?y) (not (on ?x ?y)) (not (clear ?x)) (not (empty)))))
