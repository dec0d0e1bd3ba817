; A tower of 5 blocks, wherever there is room for it; the scene is ceiling5.
(define (problem ceiling5)
  (:domain blocks)
  (:objects b0 b1 b2 b3 b4 - block)
  (:init)
  (:goal (and (on b0 b1) (on b1 b2) (on b2 b3) (on b3 b4))))
