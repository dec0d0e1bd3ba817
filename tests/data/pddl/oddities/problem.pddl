(define (problem start) (:domain ODD-1.2)
  (:goal (and (within all @sink) (within b.1 @sink) (over jet) (preference all) (not (preference minimize))))
  (:init (within all high)(within b.1 high)(= (height high) -1.5)(= (height @sink) +2e1)(= (height low) .5))
  (:objects high low - shelf all - mug b.1 - box jet minimize - aircraft))
