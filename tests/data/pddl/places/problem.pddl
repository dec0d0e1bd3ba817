(define (problem swap)
  (:domain places)
  (:objects a b c - block
            left middle right - place)
  (:init (at a left) (on c a) (clear c)
         (at b middle) (clear b)
         (clear right) (empty))
  (:goal (and (on a b) (on b c) (empty))))
