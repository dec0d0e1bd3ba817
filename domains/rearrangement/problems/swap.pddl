; Two items change places; the scene is rearrange_swap.
(define (problem swap)
  (:domain rearrangement)
  (:objects red_one blue_one - item left right - place)
  (:init)
  (:goal (and (at red_one right) (at blue_one left))))
