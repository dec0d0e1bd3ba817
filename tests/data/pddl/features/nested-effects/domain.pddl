; Effects inside effects: conditional ones in universal ones and the other way round, conditions in conditions.
(define (domain nested-effects)
  (:requirements :adl)
  (:types bird cage)
  (:predicates (in ?b - bird ?c - cage) (open ?c - cage) (free ?b - bird) (loud) (night) (tame ?b - bird) (counted))
  (:action knock
    :effect (and (and (loud) (and (counted)))
                 (and)
                 (when (night) (forall (?b - bird) (free ?b)))
                 (when (not (night)) (forall (?b - bird ?c - cage) (when (in ?b ?c) (not (in ?b ?c)))))))
  (:action unlatch
    :parameters (?c - cage)
    :effect (forall (?b - bird)
              (when (in ?b ?c)
                (and (open ?c)
                     (when (not (tame ?b)) (and (free ?b) (and (not (in ?b ?c)) (loud))))))))
  (:action dusk
    :effect (forall (?c - cage)
              (forall (?b - bird)
                (and (night) (when (and (loud) (free ?b) (tame ?b)) (and (in ?b ?c) (not (free ?b))))))))
  (:action rest
    :precondition (loud)
    :effect (when (loud) (when () (not (loud))))))
