; Variables of quantifiers and of universal effects hide parameters of the same name.
(define (domain shadowed-variables)
  (:requirements :adl)
  (:types bell tower)
  (:predicates (hangs ?b - bell ?t - tower) (rung ?b - bell) (quiet ?t - tower) (heard ?b - bell))
  (:action ring
    :parameters (?x - bell ?t - tower)
    :precondition (and (hangs ?x ?t) (or (quiet ?t) (exists (?x - bell) (rung ?x))))
    :effect (and (rung ?x) (not (quiet ?t)) (forall (?t - tower) (when (hangs ?x ?t) (heard ?x)))))
  (:action hush
    :parameters (?x - tower)
    :precondition (forall (?x - bell) (imply (rung ?x) (exists (?x - tower) (not (quiet ?x)))))
    :effect (and (quiet ?x) (forall (?x - bell) (not (rung ?x))))))
