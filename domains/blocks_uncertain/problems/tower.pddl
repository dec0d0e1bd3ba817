; One block on another, probably enough; the scene is panda_alone with unsure_blocks.
(define (problem tower)
  (:domain blocks-uncertain)
  (:objects a b - block)
  (:init)
  (:goal (surely-on a b)))
