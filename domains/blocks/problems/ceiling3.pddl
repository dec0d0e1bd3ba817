; A tower of 3 blocks, wherever there is room for it; the scene is ceiling3.
(define (problem ceiling3)
  (:domain blocks)
  (:objects b0 b1 b2 - block)
  (:init)
  (:goal (and (on b0 b1) (on b1 b2))))
