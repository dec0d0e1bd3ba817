; Two dirty dishes become a pile: the scene of the plan gets the facts of :init.
(define (problem pile)
  (:domain dishes)
  (:init (dirty a) (dirty b))
  (:goal (and (on a b) (on b c))))
