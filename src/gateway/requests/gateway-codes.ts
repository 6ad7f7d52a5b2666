import type { ErrorCode } from '../../error-codes.ts';

/** The codes that the gateway adds to those of RefoldError. They exist only in responses. A test finds codes that are missing here. */
export const gatewayCodes: Readonly<Record<string, ErrorCode>> = {
  INTERNAL_SERVER_ERROR: {
    status: '500; 200 if a field failed',
    what: 'The program failed. The log has the details under `errorId`.',
    why: "The application's code failed, or PostgreSQL refused a statement. Clients get no details.",
    do: 'Try again later. Tell the operator the `errorId`.',
  },
  PARTLY_DONE: {
    status: '200',
    what: 'The command was written, at the position `written`. What followed failed, for the reason `reason`: the code of another error.',
    why: 'Reading the payload failed, or a later command of the same field.',
    do: "Don't send it again. Read later what was written, with `@after`.",
  },
  RATE_LIMITED: {
    status: '429; 503 if the process is full or stops',
    what: 'Too many requests, subscriptions or connections.',
    why: 'A limit of the gateway, for this client or for the process; or the process stops.',
    do: 'Wait as long as `retry-after` says, or a second without it. Nothing was done: send it again.',
  },
  REQUEST_TOO_LARGE: {
    status: '413',
    what: 'The body of the request is too large.',
    why: 'It exceeds `gateway.maxBodySize`.',
    do: 'Send less.',
  },
  GRAPHQL_PARSE_FAILED: {
    status: '400',
    what: 'The document is not GraphQL.',
    why: 'A syntax error.',
    do: 'Fix the program.',
  },
  GRAPHQL_VALIDATION_FAILED: {
    status: '400',
    what: 'The document does not fit the schema.',
    why: 'It names a field, an argument or a type that does not exist, or selects it wrongly.',
    do: 'Generate the operations again from the current schema, or fix the program.',
  },
  OPERATION_RESOLUTION_FAILURE: {
    status: '400',
    what: 'The request does not say which operation of the document to execute.',
    why: 'The document has several operations, or none with this `operationName`.',
    do: 'Fix the program.',
  },
  BAD_REQUEST: {
    status: '400; 405, 409 or 415 for server-sent events',
    what: 'The request is not a GraphQL request.',
    why: "Its path, method, headers or body can't be read.",
    do: 'Fix the program.',
  },
  NOT_ACCEPTABLE: {
    status: '406',
    what: '`accept` names no type that the server writes.',
    why: 'The client asks for another type than JSON or server-sent events.',
    do: 'Fix the program.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: '415',
    what: "The server can't read the `content-type` or `content-encoding`.",
    why: 'The body is not JSON, or is compressed.',
    do: 'Fix the program.',
  },
  PERSISTED_QUERY_NOT_FOUND: {
    status: '400',
    what: 'The server does not know the document of this hash.',
    why: 'It is not in `gateway.persistedOperations`.',
    do: 'Send the document with its hash, or deploy it.',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    status: '400',
    what: 'The server has no persisted operations.',
    why: '`gateway.persistedOperations` is not set.',
    do: 'Send whole documents.',
  },
  PERSISTED_QUERY_ONLY: {
    status: '400',
    what: 'The server executes persisted operations only.',
    why: '`gateway.persistedOperations` has `only: true`.',
    do: 'Deploy the document.',
  },
};
