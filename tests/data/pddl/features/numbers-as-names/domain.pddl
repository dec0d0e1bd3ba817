; Numbers are the names of the domain's constants, of an action, a predicate, a type, and of objects.
(define (domain 2048)
  (:requirements :typing :action-costs :equality)
  (:types 8 - object)
  (:constants 0 2 - 8)
  (:predicates (next ?a ?b - 8) (at ?n - 8) (7 ?n - 8))
  (:functions (total-cost) - number (price ?n - 8) - number)
  (:action up
    :parameters (?a ?b - 8)
    :precondition (and (at ?a) (next ?a ?b) (not (= ?b 0)))
    :effect (and (at ?b) (not (at ?a)) (increase (total-cost) (price ?b))))
  (:action 4x
    :parameters (?n - 8)
    :precondition (or (at ?n) (= ?n 2))
    :effect (and (7 ?n) (when (= 0 ?n) (not (7 0))) (increase (total-cost) 3))))
