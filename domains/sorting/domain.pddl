; Items are sorted into areas: each is to be in an area of its own kind.
(define (domain sorting)
  (:requirements :typing :conditional-effects)
  (:types item area)
  (:predicates
    (in ?x - item ?a - area)               ; ?x stands in area ?a
    (belongs ?x - item ?a - area)          ; ?x and ?a are of one kind
    (sorted ?x - item)                     ; ?x stands where it belongs
    (handempty)
    (holding ?x - item))

  (:action take
    :parameters (?x - item ?a - area)
    :precondition (and (in ?x ?a) (handempty))
    :effect (and (holding ?x) (not (in ?x ?a)) (not (sorted ?x)) (not (handempty))))

  (:action put
    :parameters (?x - item ?a - area)
    :precondition (holding ?x)
    :effect (and (in ?x ?a) (when (belongs ?x ?a) (sorted ?x)) (handempty) (not (holding ?x)))))
