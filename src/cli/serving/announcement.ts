import type { Refold } from '../../refold.ts';

/** The message for a user whose application has just started. */
export function announcement({ url, databaseUrl }: Refold, graphiql: boolean): string {
  const database = `  database      ${databaseUrl.replace(/\/\/([^:@/]+):[^@]*@/, '//$1:…@')}`;
  if (!url) return `Refold maintains the read models.\n${database}`;
  return [
    'Refold is running.',
    `  GraphQL       ${url}/graphql`,
    ...(graphiql ? [`  GraphiQL      ${url}/graphql (in a browser)`] : []),
    `  WebSocket     ${url.replace(/^http/, 'ws')}/graphql`,
    `  health        ${url}/health/ready`,
    `  metrics       ${url}/metrics`,
    database,
  ].join('\n');
}
