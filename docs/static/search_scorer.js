// Scores of the search: titles and sections of pages before names of the API.
var Scorer = {
  score: (result) => result[4],
  objNameMatch: 8,
  objPartialMatch: 4,
  objPrio: { 0: 3, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
