; imply in a precondition, nested, in the condition of an effect, and in the goal.
(define (domain implications)
  (:requirements :adl)
  (:predicates (raining) (inside ?c) (dry ?c) (umbrella) (indoor ?c) (visited ?c))
  (:action fetch :effect (umbrella))
  (:action visit
    :parameters (?c)
    :precondition (imply (raining) (imply (not (indoor ?c)) (umbrella)))
    :effect (and (visited ?c) (when (imply (raining) (umbrella)) (dry ?c))))
  (:action clear-up
    :precondition (imply (umbrella) (raining))
    :effect (not (raining))))
