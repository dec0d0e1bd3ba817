; A tower of 4 blocks, wherever there is room for it; the scene is ceiling4.
(define (problem ceiling4)
  (:domain blocks)
  (:objects b0 b1 b2 b3 - block)
  (:init)
  (:goal (and (on b0 b1) (on b1 b2) (on b2 b3))))
