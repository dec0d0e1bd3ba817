; Two of four blocks are washed and cooked, and the arm goes home. For scenes/iiwa_kitchen.robray and kitchen_blocks4.
(define (problem cook2)
  (:domain kitchen)
  (:objects b0 b1 b2 b3 - item floor stove sink - region)
  (:init (on b0 floor) (on b1 floor) (on b2 floor) (on b3 floor)
         (handempty) (athome) (heats stove) (washes sink))
  (:goal (and (cooked b0) (cooked b1) (athome))))
