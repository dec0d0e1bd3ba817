; Front and back change places; the scene is rearrange_behind.
(define (problem deep_swap)
  (:domain rearrangement)
  (:objects red_one blue_one - item back_middle front_middle - place)
  (:init)
  (:goal (and (at red_one front_middle) (at blue_one back_middle))))
