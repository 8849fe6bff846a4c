"""`assay serve model.assay`: predictions over HTTP, with the certificate's name and a watch over what it promises.

POST /predict     rows as JSON or CSV: prediction, probabilities, set or interval
POST /outcome     what came true, by the prediction's id or as rows with the target
GET  /monitor     whether the promise is kept, and whether rows look as they did
GET  /model       columns, certificate
GET  /health, /metrics, /openapi.json, /docs
"""
