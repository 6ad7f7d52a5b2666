import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Pins } from '../../projections/projection/version-map.ts';
import { addVariablesUsage, documentUsage } from '../../schema/analysis/document-usage.ts';
import { sentVariables } from '../../schema/contract/sent-variables.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import type { GatewayServices } from './gateway-services.ts';

export interface CountedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly pins: Pins;
}

const nothing: ReadonlySet<string> = new Set();
// Long enough for program names; longer ones are cut.
const longestName = 60;

/** Records the fields of an operation that is about to run, under the client that sent it. */
export function countUsage(
  { count }: NonNullable<GatewayServices['usage']>,
  transport: TransportContext,
  { schema, document, operation, variables, pins }: CountedOperation,
): void {
  const usage = documentUsage(schema, document, operation);
  let more = nothing;
  if (usage.variables.length > 0) {
    const found = new Set<string>();
    addVariablesUsage(usage, sentVariables(operation, variables), found);
    more = found;
  }
  count({ ...clientOf(transport), pins: pinsText(pins) }, usage.paths, more);
}

/**
 * The name and version of a client, as it sends them: in the headers `graphql-client-name` and `graphql-client-version` or Apollo's.
 * Browsers cannot set headers on a WebSocket, so fields of these names in `connection_init` count too.
 */
export function clientOf(transport: TransportContext): { readonly name: string; readonly version: string } {
  if (!transport.request && !transport.socketHeaders) return { name: '(this program)', version: '' };
  const said = (what: 'name' | 'version'): string | undefined => {
    for (const header of [`graphql-client-${what}`, `apollographql-client-${what}`]) {
      const value = headerOf(transport, header) ?? transport.connectionParams?.[header];
      if (typeof value === 'string' && value !== '') return plain(value);
    }
    return undefined;
  };
  const name = said('name');
  return name === undefined ? { name: '(unnamed)', version: '' } : { name, version: said('version') ?? '' };
}

/** Replaces a leading bracket: names in brackets are Refold's own. */
function plain(text: string): string {
  return text.slice(0, longestName).replaceAll(/^\(|[^\x20-\x7e]/g, '?');
}

function pinsText(pins: Pins): string {
  if (pins.size === 0) return '';
  return [...pins]
    .map(([name, version]) => `${name}@${version}`)
    .toSorted()
    .join(',');
}
