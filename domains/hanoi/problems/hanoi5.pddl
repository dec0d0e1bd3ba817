; 5 discs go from the left place to the right one; the scene is hanoi5.
(define (problem hanoi5)
  (:domain hanoi)
  (:objects d1 d2 d3 d4 d5 - disc left middle right - place)
  (:init (on d5 left))
  (:goal (and (on d1 d2) (on d2 d3) (on d3 d4) (on d4 d5) (on d5 right))))
