import { type InvoiceLine, invoice } from '../../examples/online-retail/events.ts';
import { randomNumbers } from '../../examples/shopping-cart/random-numbers.ts';
import type { GlobalPosition } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { EventLog } from '../../src/store/event-log.ts';

/** A customer, and the latest invoice of its purchases. */
export interface Customer {
  readonly customerId: string;
  readonly invoiceNo: string;
  readonly country: string;
}

/** A shop that keeps selling to some of its customers. */
export class Shop {
  readonly customers: readonly Customer[];
  readonly #log: EventLog;
  readonly #random = randomNumbers(5);
  readonly #lines = new Map<string, number>();
  #opened = 0;

  /** `invoices`: all invoices, summarized. */
  constructor(log: EventLog, invoices: readonly Row[], customers: number) {
    this.#log = log;
    const newest = new Map<string, Customer>();
    for (const { customerId, invoiceNo, country, lines, isCancellation } of invoices) {
      if (customerId === null || isCancellation) continue;
      newest.set(String(customerId), {
        customerId: String(customerId),
        invoiceNo: String(invoiceNo),
        country: String(country),
      });
      this.#lines.set(String(invoiceNo), Number(lines));
    }
    this.customers = [...newest.values()].slice(-customers);
  }

  pick(): Customer {
    return this.customers[Math.floor(this.#random() * this.customers.length)] as Customer; // below length
  }

  /** Sells a customer a few things, or takes some back: usually on its latest invoice, sometimes on a new one. */
  async sell(customer: Customer, invoiceNo = this.#someInvoice(customer)): Promise<GlobalPosition> {
    const events = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => {
      const line = (this.#lines.get(invoiceNo) ?? 0) + 1;
      this.#lines.set(invoiceNo, line);
      const payload = this.#line(customer, line);
      return { type: payload.quantity < 0 ? 'ItemReturned' : 'ItemInvoiced', payload } as const;
    });
    const { position } = await this.#log.append({ family: invoice, streamId: invoiceNo, events });
    return position;
  }

  #someInvoice({ invoiceNo }: Customer): string {
    return this.#random() < 0.8 ? invoiceNo : `9${String(++this.#opened).padStart(5, '0')}`;
  }

  #line({ customerId, country }: Customer, line: number): InvoiceLine {
    const pieces = 1 + Math.floor(this.#random() * 20);
    return {
      line,
      stockCode: `S${Math.floor(this.#random() * 50)}`,
      description: null,
      quantity: this.#random() < 0.3 ? -pieces : pieces,
      unitPrice: (this.#random() * 20).toFixed(3),
      invoicedAt: `2011-12-31T${String(line % 24).padStart(2, '0')}:00:00`,
      customerId,
      country,
    };
  }
}
