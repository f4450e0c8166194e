"""01-movie-ctr: a DeepFM that predicts whether a person will like a film (MovieLens-100k)."""
