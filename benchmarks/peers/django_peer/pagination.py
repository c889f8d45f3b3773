"""Pages in the envelope of musicsvc."""

from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response


class Pages(PageNumberPagination):
    page_size = 20
    page_size_query_param = "perPage"
    max_page_size = 100

    def get_paginated_response(self, data):
        page = self.page
        envelope = {
            "current_page": page.number,
            "from": page.start_index(),
            "to": page.end_index(),
            "per_page": page.paginator.per_page,
            "last_page": page.paginator.num_pages,
            "total": page.paginator.count,
            "data": data,
        }
        return Response({"status": "success", self.request.resolver_match.url_name: envelope})
