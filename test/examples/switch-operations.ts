/** The columns of both versions. */
export const shared = '__typename invoiceNo customerId country isCancellation lines units total firstLineAt lastLineAt';

export const queries = {
  one: `query ($no: ID!) { invoiceSummary(invoiceNo: $no) { ${shared} } }`,
  agreeing: `query ($no: ID!, $customerId: ID!, $numbers: [ID!]!, $customers: [ID!]!) {
    invoiceSummary(invoiceNo: $no) { ${shared} }
    named: invoiceSummaries(where: { invoiceNo: { in: $numbers } }, orderBy: [{ invoiceNo: DESC }], first: 50) { nodes { ${shared} } }
    ofThese: invoiceSummaries(where: { customerId: { in: $customers } }, orderBy: [{ invoiceNo: DESC }], first: 30) {
      totalCount nodes { ${shared} }
    }
    customerLifetimeValue(customerId: $customerId) { customerId country invoices cancellations gross returned net lastPurchaseAt }
    _meta { projections(name: "invoice_summary") { version } }
  }`,
  newest: `{
    all: invoiceSummaries(first: 1) { totalCount }
    newest: invoiceSummaries(orderBy: [{ invoiceNo: DESC }], first: 5) { nodes { ${shared} } }
  }`,
  page: `query ($after: String) {
    page: invoiceSummaries(orderBy: [{ invoiceNo: DESC }], first: 20, after: $after) {
      pageInfo { hasNextPage endCursor } nodes { ${shared} }
    }
  }`,
  ofSecond: `query ($no: ID!) {
    invoiceSummary(invoiceNo: $no) { ${shared} unitsReturned largestLines { line stockCode quantity amount } }
  }`,
} as const;

export const subscriptions = {
  row: `subscription ($no: ID!) { invoiceSummary(invoiceNo: $no) { ${shared} } }`,
  list: `subscription ($customer: ID!) {
    invoiceSummaries(where: { customerId: { eq: $customer } }, orderBy: [{ invoiceNo: DESC }], first: 10) {
      position snapshot { ${shared} } entered { ${shared} } changed { ${shared} } left { invoiceNo }
    }
  }`,
  rowOfSecond: `subscription ($no: ID!) { invoiceSummary(invoiceNo: $no) { ${shared} largestLines { amount } } }`,
} as const;

export type Invoice = Record<string, unknown> & { readonly invoiceNo: string; readonly country: string };
export type Version = 1 | 2;

export interface QueryData {
  readonly invoiceSummary?: Invoice;
  readonly named?: { readonly nodes: readonly Invoice[] };
  readonly ofThese?: { readonly totalCount: number; readonly nodes: readonly Invoice[] };
  readonly customerLifetimeValue?: Record<string, unknown>;
  readonly all?: { readonly totalCount: number };
  readonly newest?: { readonly nodes: readonly Invoice[] };
  readonly page?: {
    readonly nodes: readonly Invoice[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
  };
  readonly _meta?: { readonly projections: readonly { readonly version: Version }[] };
}

export interface ListUpdate {
  readonly position: string;
  readonly snapshot: readonly Invoice[] | null;
  readonly entered: readonly Invoice[];
  readonly changed: readonly Invoice[];
  readonly left: readonly { readonly invoiceNo: string }[];
}
