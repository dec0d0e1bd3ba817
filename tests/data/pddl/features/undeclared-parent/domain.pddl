; The types below a type that is not declared itself.
(define (domain undeclared-parent)
  (:requirements :typing)
  (:types boat raft - vessel tiny - boat)
  (:predicates (afloat ?v - vessel) (sealed ?b - boat))
  (:action launch
    :parameters (?v - vessel)
    :effect (afloat ?v))
  (:action seal
    :parameters (?b - boat)
    :precondition (forall (?v - vessel) (afloat ?v))
    :effect (sealed ?b)))
