; 4 discs go from the left place to the right one; the scene is hanoi4.
(define (problem hanoi4)
  (:domain hanoi)
  (:objects d1 d2 d3 d4 - disc left middle right - place)
  (:init (on d4 left))
  (:goal (and (on d1 d2) (on d2 d3) (on d3 d4) (on d4 right))))
