; 3 discs go from the left place to the right one; the scene is hanoi3.
(define (problem hanoi3)
  (:domain hanoi)
  (:objects d1 d2 d3 - disc left middle right - place)
  (:init (on d3 left))
  (:goal (and (on d1 d2) (on d2 d3) (on d3 right))))
