; A derived predicate that depends on itself, and one that depends on its negation.
(define (domain recursive-axioms)
  (:requirements :derived-predicates :typing :adl)
  (:types node)
  (:predicates (wire ?a ?b - node) (live ?n - node) (connected ?a ?b - node) (dead ?n - node) (lit))
  (:derived (connected ?a ?b - node)
    (or (wire ?a ?b) (wire ?b ?a) (exists (?m - node) (and (connected ?a ?m) (connected ?m ?b)))))
  (:derived (dead ?n - node)
    (not (exists (?s - node) (and (live ?s) (or (= ?s ?n) (connected ?s ?n))))))
  (:action join
    :parameters (?a ?b - node)
    :precondition (and (not (= ?a ?b)) (not (connected ?a ?b)))
    :effect (wire ?a ?b))
  (:action switch-on
    :precondition (forall (?n - node) (not (dead ?n)))
    :effect (lit)))
