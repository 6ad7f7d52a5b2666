import type { Plugin } from 'graphql-yoga';

const refusals: Readonly<Record<number, { readonly code: string; readonly message: string }>> = {
  406: {
    code: 'NOT_ACCEPTABLE',
    message: "Send 'accept: application/graphql-response+json', 'application/json' or 'text/event-stream'.",
  },
  415: { code: 'UNSUPPORTED_MEDIA_TYPE', message: "Send 'content-type: application/json'." },
};

/** Adds a body to responses that have only a status; it says what to send instead. */
export function useWordedRefusals(): Plugin {
  return {
    onResponse({ response, setResponse, fetchAPI }) {
      const refusal = refusals[response.status];
      if (!refusal || response.body !== null) return;
      const { code, message } = refusal;
      const headers = new fetchAPI.Headers(response.headers);
      headers.set('content-type', 'application/json; charset=utf-8');
      headers.delete('content-length');
      headers.delete('accept'); // yoga's header is as long as the client's, times the number of types
      const body = JSON.stringify({ errors: [{ message, extensions: { code } }] });
      setResponse(new fetchAPI.Response(body, { status: response.status, headers }));
    },
  };
}
