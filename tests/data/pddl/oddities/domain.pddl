;; Legal but unusual: sections in another order, names that a grammar may reserve, either, characters in names,
;; no blank before a variable, negative numbers, nested conjunctions of effects.
(Define (Domain odd-1.2)
  (:predicates (within ?x - (either cup box)?y - shelf) (all ?s - shelf) (preference ?x)
               (start ?x ?y - object) (end) (over ?a - aircraft) (always ?x - thing@home))
  (:constants @sink - shelf total - number)
  (:functions (total-cost) - number (height ?s - shelf))
  (:types cup box - thing@home shelf aircraft thing@home number - object
          mug - (either cup aircraft))
  (:requirements :adl :typing)
  (:action end :effect (and (and (end)) (and (and (start @sink @sink)) (all @sink))))
  (:action at :parameters(?duration - shelf)
    :effect (forall (?x - (either cup box)) (when (within ?x ?duration) (and (not (within ?x ?duration)) (within ?x @sink))))
    :precondition (and (all @sink)(not (all ?duration))))
  (:action fly :parameters (?a - aircraft ?m - (either mug box))
    :precondition (imply (over ?a) (exists (?c - cup) (= ?c ?m)))
    :effect (and (over ?a) (preference ?m))))
