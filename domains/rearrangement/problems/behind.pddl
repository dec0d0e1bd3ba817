; The red item goes aside; the blue one, which is in its way, is where it was; the scene is rearrange_behind.
(define (problem behind)
  (:domain rearrangement)
  (:objects red_one blue_one - item aside_left front_middle - place)
  (:init)
  (:goal (and (at red_one aside_left) (at blue_one front_middle))))
