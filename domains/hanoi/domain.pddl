; The towers of Hanoi: discs on discs and places, never a larger one on a smaller one.
(define (domain hanoi)
  (:requirements :typing)
  (:types disc place - object)
  (:predicates
    (on ?d - disc ?x - object)             ; ?d lies on ?x, a disc or a place
    (clear ?x - object)                    ; nothing lies on ?x
    (fits ?d - disc ?x - object)           ; ?x is a place, or a disc larger than ?d
    (handempty)
    (holding ?d - disc))

  (:action take
    :parameters (?d - disc ?x - object)
    :precondition (and (on ?d ?x) (clear ?d) (handempty))
    :effect (and (holding ?d) (clear ?x) (not (on ?d ?x)) (not (clear ?d)) (not (handempty))))

  (:action put
    :parameters (?d - disc ?x - object)
    :precondition (and (holding ?d) (clear ?x) (fits ?d ?x))
    :effect (and (on ?d ?x) (clear ?d) (handempty) (not (holding ?d)) (not (clear ?x)))))
