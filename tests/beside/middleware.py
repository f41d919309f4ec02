from django.http import JsonResponse


def greet(get_response):
    def middleware(request):
        if request.headers.get("X-Refuse"):
            return JsonResponse({"refused": request.path}, status=451)
        if request.headers.get("X-Read"):
            assert request.body
        response = get_response(request)
        response["X-Greeting"] = "Hello"
        response["X-Body"] = request.body.decode()[:9]
        return response

    return middleware
